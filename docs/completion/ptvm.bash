# bash completion for ptvm; ptvm itself says which words there are, and what follows them:
# lines of a word, a tab, and the name of its argument.

_ptvm()
{
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local IFS=$'\n' verb=() list argument=

	((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != help ]] && verb=("${COMP_WORDS[1]}")
	list=$(ptvm "${verb[@]}" --complete 2>/dev/null)

	# bash splits --input=FILE into three words.
	[[ $word == = ]] && word=
	[[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}
	[[ $previous == --* ]] && argument=$(sed -n "s/^$previous=\t//p" <<< "$list")

	if [[ $argument =~ ^(FILE|DIR) || ($COMP_CWORD -gt 1 && -z $argument && $word != -* && ${#verb[@]} -gt 0) ]]; then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$word"))
	elif [[ -n $argument ]]; then
		COMPREPLY=()
	else
		COMPREPLY=($(compgen -W "$(cut -f1 <<< "$list")" -- "$word"))
		[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
	fi
	return 0
}

complete -F _ptvm ptvm
