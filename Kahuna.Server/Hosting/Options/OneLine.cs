namespace Kahuna.Server.Hosting.Options;

/// <summary>Keeps messages that quote foreign text on one line. Pure.</summary>
internal static class OneLine
{
    private const int CharactersMax = 200;

    public static string Of(string text)
    {
        string line = string.Join(
            ' ',
            text.Split(['\r', '\n', '\t'], StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries));
        return line.Length <= CharactersMax ? line : line[..CharactersMax] + "…";
    }
}
