# Completes the commands, options and names of ratings. In ~/.bashrc:
#     eval "$(ratings completion bash)"
_ratings_completion() {
    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        case $reply in
            file) compopt -o default 2>/dev/null ;;
            folder) compopt -o dirnames 2>/dev/null ;;
            =*) COMPREPLY+=("${reply#=}") ;;
        esac
    done < <(_RATINGS_COMPLETE=bash_complete "${1/#\~\//$HOME/}" "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -o nosort -F _ratings_completion ratings 2>/dev/null || complete -o default -F _ratings_completion ratings
