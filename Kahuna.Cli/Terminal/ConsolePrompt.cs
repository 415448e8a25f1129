using System.Text;

namespace Kahuna.Cli.Terminal;

/// <summary>Asks on standard error and reads keys without showing them. Used by one command at a time.</summary>
internal sealed class ConsolePrompt(TextWriter error) : IPrompt
{
    /// <summary>No password is longer; what is typed above is left out.</summary>
    private const int LengthMax = 4096;

    public bool IsThere => !Console.IsInputRedirected && !Console.IsErrorRedirected;

    public string? ReadSecret(string question)
    {
        error.Write($"{question}: ");
        StringBuilder typed = new();
        while (true)
        {
            ConsoleKeyInfo key = Console.ReadKey(intercept: true);
            switch (key)
            {
                case { Key: ConsoleKey.Enter }:
                    error.WriteLine();
                    return typed.ToString();
                case { Key: ConsoleKey.Escape }:
                case { Key: ConsoleKey.D, Modifiers: ConsoleModifiers.Control }:
                    error.WriteLine();
                    return null;
                case { Key: ConsoleKey.U, Modifiers: ConsoleModifiers.Control }:
                    typed.Clear();
                    break;
                case { Key: ConsoleKey.Backspace }:
                    typed.Length = Math.Max(0, typed.Length - 1);
                    break;
                default:
                    if (!char.IsControl(key.KeyChar) && typed.Length < LengthMax)
                    {
                        typed.Append(key.KeyChar);
                    }

                    break;
            }
        }
    }
}
