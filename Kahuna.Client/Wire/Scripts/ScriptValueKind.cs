namespace Kahuna.Wire.Scripts;

/// <summary>The types of the script language. The numbers are part of the encoding of values.</summary>
internal enum ScriptValueKind : byte
{
    /// <summary>No value.</summary>
    Null = 0,

    /// <summary>True or false.</summary>
    Bool = 1,

    /// <summary>A signed 64-bit integer.</summary>
    Integer = 2,

    /// <summary>A finite double.</summary>
    Double = 3,

    /// <summary>Text: valid UTF-8.</summary>
    String = 4,

    /// <summary>Bytes that are not text.</summary>
    Bytes = 5,

    /// <summary>An ordered list of values.</summary>
    Array = 6,

    /// <summary>A value that a read returned, with its key, revision and remaining time.</summary>
    Entry = 7,
}
