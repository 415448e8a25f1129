using System.Collections;
using System.Globalization;
using System.Text;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>What the files of the page promise by themselves.</summary>
public sealed partial class PageSourceTests
{
    private static readonly IReadOnlyDictionary<string, PageFile> s_files = PageFile.ReadAll();

    /// <summary>Text and its ground, by their names in the style sheet.</summary>
    private static readonly (string Text, string Ground)[] s_pairs =
    [
        ("text", "ground"), ("text", "raised"), ("quiet", "ground"), ("quiet", "raised"), ("link", "ground"),
        ("action-text", "action"), ("bad", "ground"), ("good", "ground"),
    ];

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    public void Text_has_the_contrast_of_WCAG_AA_in_light_and_dark(int scheme)
    {
        const double TextMin = 4.5;
        const double PartsMin = 3;
        string block = Root().Matches(TextOf("style.css"))[scheme].Value;
        Dictionary<string, double> light = Colour().Matches(block).ToDictionary(
            static match => match.Groups[1].Value, static match => Luminance(match.Groups[2].Value));

        Assert.All(s_pairs, pair =>
            Assert.True(Contrast(light[pair.Text], light[pair.Ground]) >= TextMin, $"{pair}"));

        // Borders of fields and buttons, the ring of the focus, and the lines of charts (WCAG 2.2, 1.4.11).
        Assert.All((string[])["line", "link", "action", "line-a", "line-b", "line-c", "line-d", "line-e"], name =>
            Assert.True(Contrast(light[name], light["ground"]) >= PartsMin, name));
    }

    [Fact]
    public void Black_on_white_has_the_highest_contrast() =>
        Assert.Equal(21, Contrast(Luminance("000000"), Luminance("ffffff")), 3);

    [Fact]
    public void Nothing_becomes_markup_and_nothing_is_kept_in_the_browser()
    {
        string[] banned =
        [
            "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "DOMParser",
            "eval(", "new Function", "localStorage", "sessionStorage", "indexedDB", ".cookie", "setAttribute('on",
            "http://", "javascript:",
        ];
        Assert.Empty(
            from file in s_files
            where file.Key.EndsWith(".js", StringComparison.Ordinal)
            from word in banned
            where TextOf(file.Key).Contains(word, StringComparison.OrdinalIgnoreCase)
            select $"{file.Key}: {word}");
    }

    [Fact]
    public void The_document_has_no_script_style_or_handler_in_it_and_names_only_files_that_exist()
    {
        string document = TextOf(PageFile.Document);
        Assert.DoesNotMatch("<style|style=|\\son[a-z]+=|<script(?![^>]*src=)", document);
        foreach (Match name in Regex.Matches(document, "(?:src|href)=\"/ui/([^\"]+)\""))
        {
            Assert.Contains(name.Groups[1].Value, s_files.Keys);
        }

        foreach ((string module, _) in s_files.Where(static file => file.Key.EndsWith(".js", StringComparison.Ordinal)))
        {
            foreach (Match name in Regex.Matches(TextOf(module), "from '\\./([^']+)'"))
            {
                Assert.Contains(name.Groups[1].Value, s_files.Keys);
            }
        }
    }

    [Fact]
    public void The_page_can_be_switched_off()
    {
        Assert.True(Parse().Options!.Access.ServesPage);
        Assert.True(Parse("--ui", "on").Options!.Access.ServesPage);
        Assert.False(Parse("--ui", "OFF").Options!.Access.ServesPage);
        Assert.Equal("--ui: 'no' is not one of on, off.", Assert.Single(Parse("--ui", "no").Errors));
    }

    private static NodeOptionsResult Parse(params string[] arguments)
    {
        using TemporaryDirectory directory = new();
        return NodeOptionsParser.Parse([.. arguments, "--data", directory.Path], new Hashtable());
    }

    private static string TextOf(string file) => Encoding.UTF8.GetString(s_files[file].Content);

    /// <summary>Relative luminance of a colour of sRGB (WCAG 2.2, definitions).</summary>
    private static double Luminance(string hex)
    {
        double[] parts =
        [
            .. hex.Chunk(2).Select(static pair =>
                int.Parse(pair, NumberStyles.HexNumber, CultureInfo.InvariantCulture) / 255.0),
        ];
        double[] linear =
        [
            .. parts.Select(static part => part <= 0.04045 ? part / 12.92 : Math.Pow((part + 0.055) / 1.055, 2.4)),
        ];
        return (0.2126 * linear[0]) + (0.7152 * linear[1]) + (0.0722 * linear[2]);
    }

    private static double Contrast(double one, double other) =>
        (Math.Max(one, other) + 0.05) / (Math.Min(one, other) + 0.05);

    [GeneratedRegex(@":root \{[^}]*\}")]
    private static partial Regex Root();

    [GeneratedRegex("--([a-z-]+): #([0-9a-f]{6});")]
    private static partial Regex Colour();
}
