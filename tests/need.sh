# Sourced by scripts that must run on a fresh machine: `need PACKAGE...` installs what is missing, and `usage ARGUMENT...`
# answers --help with the comment at the head of the script.

usage()
{
	[[ ${1-} == -* ]] || return 0
	sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
	if [[ $1 != -h && $1 != --help ]]; then
		echo "unknown option: $1" >&2
		exit 2
	fi
	exit 0
}

need()
{
	local missing=() package

	for package; do
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' ||
			missing+=("$package")
	done
	((${#missing[@]})) || return 0
	if [[ $(id -u) != 0 ]]; then
		echo "Something is missing. As root: apt-get install --no-install-recommends ${missing[*]}" >&2
		exit 1
	fi
	echo "This installs with apt-get: ${missing[*]}"
	apt-get -qq update
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}" >/dev/null
}
