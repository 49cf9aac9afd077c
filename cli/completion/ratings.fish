# Completes the commands, options and names of ratings. In ~/.config/fish/config.fish:
#     ratings completion fish | source
function _ratings_completion
    set -l line (commandline -opc)
    set -l current (commandline -ct)
    for reply in (_RATINGS_COMPLETE=fish_complete $line[1] $line[2..-1] "$current" 2>/dev/null)
        switch $reply
            case file
                __fish_complete_path "$current"
            case folder
                __fish_complete_directories "$current"
            case '=*'
                string sub -s 2 -- $reply
        end
    end
end
complete -c ratings -f -a '(_ratings_completion)'
