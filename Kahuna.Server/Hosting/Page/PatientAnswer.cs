namespace Kahuna.Server.Hosting.Page;

/// <summary>Sends an answer of one piece to a caller that may be slow, but not for ever. Stateless.</summary>
internal static class PatientAnswer
{
    /// <summary>How long a caller may take to read the answer, as for calls.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(30);

    /// <summary>Sends the body of the answer.</summary>
    public static async Task SendAsync(HttpContext context, byte[] answer)
    {
        using CancellationTokenSource patience = CancellationTokenSource.CreateLinkedTokenSource(
            context.RequestAborted);
        patience.CancelAfter(s_patience);
        try
        {
            await context.Response.Body.WriteAsync(answer, patience.Token);
        }
        catch (OperationCanceledException)
        {
            // The caller does not read or has disconnected; the web server has reset the response.
        }
    }
}
