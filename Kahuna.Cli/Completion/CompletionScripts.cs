namespace Kahuna.Cli.Completion;

/// <summary>
/// What a shell has to run so that it completes the commands of the tool: each asks <c>kahuna __complete</c>. Static.
/// </summary>
internal static class CompletionScripts
{
    /// <summary>The scripts by the shell's name.</summary>
    public static IReadOnlyDictionary<string, string> ByShell { get; } = new Dictionary<string, string>
    {
        ["bash"] = """
            _kahuna() {
              local IFS=$'\n'
              COMPREPLY=($(kahuna __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
            }
            complete -o default -F _kahuna kahuna
            """,
        ["zsh"] = """
            #compdef kahuna
            _kahuna() {
              local -a found
              found=("${(@f)$(kahuna __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
              (( $#found )) && [[ -n $found[1] ]] && compadd -- "${found[@]}"
            }
            compdef _kahuna kahuna
            """,
        ["fish"] = """
            complete -c kahuna -f -a '(kahuna __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
            """,
        ["pwsh"] = """
            Register-ArgumentCompleter -Native -CommandName kahuna -ScriptBlock {
              param($word, $line, $cursor)
              $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
              if ($word -eq '') { $words += '' }
              kahuna __complete '--' @words 2>$null |
                ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
            }
            """,
    };
}
