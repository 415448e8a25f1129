namespace Kahuna.Cli.Results;

/// <summary>How results are written.</summary>
internal enum OutputFormat
{
    /// <summary>For people: columns, or the value alone.</summary>
    Table = 0,

    /// <summary>One JSON document: an object, or an array of objects.</summary>
    Json = 1,

    /// <summary>One JSON object per line.</summary>
    JsonLines = 2,
}
