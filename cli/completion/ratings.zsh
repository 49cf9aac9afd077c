#compdef ratings
# Completes the commands, options and names of ratings. In ~/.zshrc, after compinit:
#     eval "$(ratings completion zsh)"
_ratings_completion() {
    local reply
    local -a words_only explained display
    for reply in "${(@f)$(_RATINGS_COMPLETE=zsh_complete "${(Q)words[1]}" "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        case $reply in
            file) _files ;;
            folder) _files -/ ;;
            \=*$'\t'*) explained+=("${${reply#=}%%$'\t'*}"); display+=("${${reply#=}%%$'\t'*}  ${reply#*$'\t'}") ;;
            \=*) words_only+=("${reply#=}") ;;
        esac
    done
    local either='m:{[:lower:][:upper:]}={[:upper:][:lower:]}'
    (( $#explained )) && compadd -M $either -o nosort -l -d display -a explained
    (( $#words_only )) && compadd -M $either -o nosort -a words_only
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _ratings_completion "$@"
else
    compdef _ratings_completion ratings
fi
