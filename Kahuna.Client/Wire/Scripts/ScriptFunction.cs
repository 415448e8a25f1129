namespace Kahuna.Wire.Scripts;

/// <summary>The functions of the language; several names may stand for one.</summary>
internal enum ScriptFunction
{
    /// <summary>Absolute value.</summary>
    Abs,

    /// <summary>Power with an integer exponent of 0 or more.</summary>
    Pow,

    /// <summary>Rounds to some decimals, half away from zero.</summary>
    Round,

    /// <summary>Smallest whole number that is not below.</summary>
    Ceil,

    /// <summary>Largest whole number that is not above.</summary>
    Floor,

    /// <summary>Smallest argument.</summary>
    Min,

    /// <summary>Largest argument.</summary>
    Max,

    /// <summary>Casts to integer.</summary>
    ToInteger,

    /// <summary>Casts to double.</summary>
    ToDouble,

    /// <summary>Casts to string.</summary>
    ToText,

    /// <summary>Casts to boolean.</summary>
    ToBoolean,

    /// <summary>Writes as JSON.</summary>
    ToJson,

    /// <summary>Casts to bytes.</summary>
    ToBytes,

    /// <summary>Is it an integer?</summary>
    IsInteger,

    /// <summary>Is it a double?</summary>
    IsDouble,

    /// <summary>Is it a string?</summary>
    IsText,

    /// <summary>Is it a boolean?</summary>
    IsBoolean,

    /// <summary>Is it null?</summary>
    IsNull,

    /// <summary>Is it an array?</summary>
    IsArray,

    /// <summary>Is it bytes?</summary>
    IsBytes,

    /// <summary>Joins the texts of its arguments.</summary>
    Concat,

    /// <summary>Changes a to z.</summary>
    Upper,

    /// <summary>Changes A to Z.</summary>
    Lower,

    /// <summary>Code points of a string, or bytes.</summary>
    Length,

    /// <summary>A part of a string, in code points.</summary>
    Substring,

    /// <summary>Does a string begin with another?</summary>
    StartsWith,

    /// <summary>Does a string end with another?</summary>
    EndsWith,

    /// <summary>Code points before another string, or -1.</summary>
    IndexOf,

    /// <summary>The parts between separators.</summary>
    Split,

    /// <summary>Without ASCII white space at both ends.</summary>
    Trim,

    /// <summary>Items of an array.</summary>
    Count,

    /// <summary>Revision of an entry.</summary>
    Revision,

    /// <summary>Remaining time of an entry.</summary>
    Expires,

    /// <summary>Cluster time.</summary>
    CurrentTime,
}
