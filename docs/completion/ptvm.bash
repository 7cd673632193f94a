# bash completion for ptvm; ptvm itself says which words there are, and what follows them: lines of
# a word, the name of its argument, its letter, and words for the argument, with tabs between.

# The line about an option, by either name; behind an argument there is none.
_ptvm_option()
{
	awk -F '\t' -v word="$1" 'word != "" && ($1 == word || $1 == word "=" || $3 == word)' <<< "$2"
}

_ptvm()
{
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local IFS=$'\n' verb=() list argument= values= line joined= i

	((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != help ]] && verb=("${COMP_WORDS[1]}")
	list=$(ptvm "${verb[@]}" --complete 2>/dev/null)
	COMPREPLY=()

	if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == help ]]; then
		list=$(cut -f1 <<< "$list" | grep -v -e ^- -e ^help)
		((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "$list" -- "$word"))
		return 0
	fi

	# What follows -- is a command.
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] || continue
		((COMP_CWORD == i + 1)) && COMPREPLY=($(compgen -c -- "$word")) && return 0
		compopt -o default 2>/dev/null
		return 0
	done

	# bash splits --input=FILE into three words, and --control=fifo:FILE into five. Optional arguments
	# must be joined.
	[[ $word == [=:] ]] && word= joined=$previous
	[[ $previous == [=:] ]] && joined=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ $joined == [!-]* ]]; then # fields of a kind of events, or a place
		for ((i = COMP_CWORD - 2; i > 1; i--)); do
			[[ ${COMP_WORDS[i]} == -* ]] && break
		done
		line=$(_ptvm_option "${COMP_WORDS[i]}" "$list")
		[[ $line == *$'\t'LIST$'\t'* ]] || line=$'\tFILE'
		[[ $joined == ssh ]] && COMPREPLY=($(compgen -A hostname -- "$word")) && return 0
	else
		line=$(_ptvm_option "${joined:-$previous}" "$list")
	fi
	if [[ -n $joined || $line == *=$'\t'* ]]; then
		argument=$(cut -f2 <<< "$line")
		values=$(cut -f4 <<< "$line" | tr ' ' '\n')
	fi

	if [[ -n $values ]]; then
		# The last one of a list; fields may have a sign.
		local before=${word%"${word##*[,+-]}"}
		COMPREPLY=($(compgen -P "$before" -W "$values" -- "${word#"$before"}"))
		compopt -o nospace 2>/dev/null
	elif [[ $argument =~ ^(FILE|DIR) ]]; then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$word"))
	elif [[ -z $argument && -z $joined ]]; then
		COMPREPLY=($(compgen -W "$(cut -f1 <<< "$list")" -- "$word"))
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	fi
	return 0
}

complete -F _ptvm ptvm
