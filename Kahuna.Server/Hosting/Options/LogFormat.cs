namespace Kahuna.Server.Hosting.Options;

/// <summary>The format of log lines.</summary>
internal enum LogFormat
{
    /// <summary>One line of text per event. The default.</summary>
    Text,

    /// <summary>One JSON object per event and line, with its fields.</summary>
    Json,
}
