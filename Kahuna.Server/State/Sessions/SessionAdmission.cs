namespace Kahuna.Server.State.Sessions;

/// <summary>
/// How a session takes a number: whether its command is carried out, and what is answered otherwise. A value.
/// </summary>
internal enum SessionAdmission
{
    /// <summary>It was not seen here: the command is carried out, and its outcome remembered.</summary>
    New,

    /// <summary>It was carried out: the remembered outcome is the answer.</summary>
    Repeated,

    /// <summary>It is confirmed, and its outcome is forgotten: nobody should ask for it.</summary>
    Forgotten,

    /// <summary>Another command had it.</summary>
    Reused,

    /// <summary>The session is not known here, and the command does not open one.</summary>
    Unknown,

    /// <summary>No room for a further session, or for an outcome with a value.</summary>
    Full,
}
