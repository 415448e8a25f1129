using System.Security.Cryptography;

namespace Kahuna.Server.Hosting.Page;

/// <summary>One file of the page, as it is sent. Immutable; any thread.</summary>
/// <param name="ContentType">Its media type.</param>
/// <param name="Content">Its bytes.</param>
internal sealed record PageFile(string ContentType, byte[] Content)
{
    /// <summary>What a path names when it names no file: the document.</summary>
    public const string Document = "index.html";

    private const string ResourcePrefix = "page/";

    /// <summary>The entity tag: another content has another one (RFC 9110, 8.8.3).</summary>
    public string Tag { get; } = $"\"{Convert.ToHexStringLower(SHA256.HashData(Content))[..32]}\"";

    /// <summary>Reads the page from the resources of the assembly.</summary>
    /// <returns>The files by name.</returns>
    public static IReadOnlyDictionary<string, PageFile> ReadAll()
    {
        Dictionary<string, PageFile> files = new(StringComparer.Ordinal);
        foreach (string resource in typeof(PageFile).Assembly.GetManifestResourceNames().Where(
            static name => name.StartsWith(ResourcePrefix, StringComparison.Ordinal)))
        {
            using Stream stream = typeof(PageFile).Assembly.GetManifestResourceStream(resource)!;
            byte[] content = new byte[stream.Length];
            stream.ReadExactly(content);
            string name = resource[ResourcePrefix.Length..];
            files.Add(name, new PageFile(TypeOf(name), content));
        }

        return files;
    }

    private static string TypeOf(string name) => Path.GetExtension(name) switch
    {
        ".html" => "text/html; charset=utf-8",
        ".js" => "text/javascript; charset=utf-8",
        ".css" => "text/css; charset=utf-8",
        ".svg" => "image/svg+xml",
        string other => throw new InvalidOperationException($"The page has a file of an unknown type: {other}."),
    };
}
