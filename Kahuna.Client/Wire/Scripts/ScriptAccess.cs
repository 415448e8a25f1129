namespace Kahuna.Wire.Scripts;

/// <summary>What a data statement does.</summary>
internal enum ScriptAccess
{
    /// <summary><c>get key</c>.</summary>
    Get,

    /// <summary><c>exists key</c>.</summary>
    Exists,

    /// <summary><c>set key expr</c>.</summary>
    Set,

    /// <summary><c>delete key</c>.</summary>
    Delete,

    /// <summary><c>extend key expr</c>.</summary>
    Extend,

    /// <summary><c>get by bucket key</c>.</summary>
    Bucket,

    /// <summary><c>scan by prefix key</c>.</summary>
    Prefix,
}

/// <summary>What <c>not set</c> and its like ask about.</summary>
internal enum ScriptGuard
{
    /// <summary><c>not set</c>.</summary>
    Set,

    /// <summary><c>not found</c>: of gets, exists, buckets and prefixes.</summary>
    Found,

    /// <summary><c>not deleted</c>.</summary>
    Deleted,

    /// <summary><c>not extended</c>.</summary>
    Extended,
}
