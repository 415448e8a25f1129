namespace Kahuna.Server.Hosting.Options;

/// <summary>How log lines are written.</summary>
internal enum LogFormat
{
    /// <summary>One line of text for each event. The default.</summary>
    Text,

    /// <summary>One JSON object on a line for each event, with its fields.</summary>
    Json,
}
