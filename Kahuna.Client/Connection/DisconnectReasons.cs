namespace Kahuna.Client.Connection;

/// <summary>Turns an exception into a short reason for messages and logs. Stateless, any thread.</summary>
internal static class DisconnectReasons
{
    /// <summary>The innermost message, which names the cause ("Connection refused"), without its final dot.</summary>
    public static string Of(Exception e)
    {
        Exception inner = e;
        while (inner.InnerException is { } next)
        {
            inner = next;
        }

        return inner.Message.TrimEnd('.');
    }
}
