using System.Text.RegularExpressions;

namespace Kahuna.Tests.Tidy;

/// <summary>
/// Finds the names of our code in a page, and says which of them are wrong. A link such as
/// <c>[`Type.Member`](../Folder/Type.cs)</c> must lead to the file that declares the member; a name without a link must
/// be a member somewhere. Stateless; the tests that use it share one collection.
/// </summary>
internal static partial class NamedCode
{
    /// <summary>Types of the runtime that pages speak of.</summary>
    private static readonly HashSet<string> s_foreign = ["RandomAccess", "Task", "Type"];

    /// <summary>How many names of the page are links to the code.</summary>
    public static int CountLinks(string text) => Link().Count(text);

    /// <summary>What is wrong with the names in a page.</summary>
    /// <param name="page">Its path from the root, with '/' between.</param>
    /// <param name="text">Its text.</param>
    public static IEnumerable<string> Wrong(string page, string text) =>
        WrongLinks(page, text).Concat(WrongNames(page, text));

    private static IEnumerable<string> WrongLinks(string page, string text)
    {
        string folder = Path.GetDirectoryName(Repository.FullPath(page))!;
        foreach (Match match in Link().Matches(text))
        {
            string type = match.Groups["type"].Value;
            string member = match.Groups["member"].Value;
            string file = Path.GetRelativePath(Repository.Root, Path.GetFullPath(match.Groups["file"].Value, folder))
                .Replace('\\', '/');
            string name = member.Length == 0 ? type : $"{type}.{member}";
            if (!Repository.Exists(file))
            {
                yield return $"{page}: `{name}`: there is no file {file}{Elsewhere(type)}";
            }
            else if (!DeclaredCode.OfFile(file).TryGetValue(type, out HashSet<string>? members))
            {
                yield return $"{page}: `{name}`: {file} declares no type {type}{Elsewhere(type)}";
            }
            else if (member.Length > 0 && !members.Contains(member))
            {
                yield return $"{page}: `{name}`: {type} in {file} has no member {member}";
            }
        }
    }

    private static IEnumerable<string> WrongNames(string page, string text)
    {
        foreach (Match match in Name().Matches(text))
        {
            string type = match.Groups["type"].Value;
            string member = match.Groups["member"].Value;
            if (s_foreign.Contains(type) || DeclaredCode.Namespaces.Contains($"{type}.{member}"))
            {
                continue;
            }

            if (!DeclaredCode.Types.TryGetValue(type, out HashSet<string>? members))
            {
                yield return $"{page}: `{type}.{member}`: there is no type {type}";
            }
            else if (!members.Contains(member))
            {
                yield return $"{page}: `{type}.{member}`: no type {type} has a member {member}";
            }
        }
    }

    private static string Elsewhere(string type)
    {
        string? file = Repository.SourceFiles.FirstOrDefault(file => Path.GetFileName(file) == $"{type}.cs");
        return file is null ? "" : $"; see {file}";
    }

    [GeneratedRegex(@"\[`(?<type>[A-Z]\w*)(?:<\w+>)?(?:\.(?<member>[A-Z]\w*))?(?:\(\))?`\]\((?<file>[^)\s#]+\.cs)\)")]
    private static partial Regex Link();

    /// <summary>A name that is not the text of a link; a file's name is none.</summary>
    [GeneratedRegex(@"(?<!\[)`(?<type>[A-Z]\w*)(?:<\w+>)?\.(?<member>[A-Z]\w*)(?:\(\))?`")]
    private static partial Regex Name();
}
