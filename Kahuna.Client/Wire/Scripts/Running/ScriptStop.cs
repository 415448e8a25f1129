namespace Kahuna.Wire.Scripts.Running;

/// <summary>Why a run does not go on by itself.</summary>
internal enum ScriptStop
{
    /// <summary>It needs the value of a key.</summary>
    NeedsKey,

    /// <summary>It needs the entries of a bucket.</summary>
    NeedsBucket,

    /// <summary>It needs the entries of a prefix.</summary>
    NeedsPrefix,

    /// <summary>It has a result.</summary>
    Finished,

    /// <summary>It has an error, and no writes.</summary>
    Failed,
}
