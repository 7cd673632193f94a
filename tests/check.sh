# Sourced by scripts that run tests: `check WHAT COMMAND...` runs the command, quiet where it works, and counts it.
# The script names a file for its output in `log`.

passed=0 failed=0

check()
{
	local what=$1

	shift
	if "$@" >"$log" 2>&1; then
		echo "ok    $what"
		((passed += 1))
	else
		tail -n 60 "$log"
		echo "FAIL  $what"
		((failed += 1))
		return 1
	fi
}
