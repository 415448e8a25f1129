namespace Kahuna.Client.Connection;

/// <summary>Turns what went wrong into the part of a sentence that a person can use. Stateless, any thread.</summary>
internal static class Reasons
{
    /// <summary>The innermost message, which names the cause ("Connection refused"), without its closing dot.</summary>
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
