using System.Text;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// Sends an answer of one piece to a caller that may be slow, but not for ever: <see cref="AnswerRoom"/> has the
/// limits. Stateless.
/// </summary>
internal static class PatientAnswer
{
    /// <summary>Sends the body of the answer.</summary>
    public static async Task SendAsync(HttpContext context, byte[] answer)
    {
        using AnswerRoom.Place place = AnswerRoom.Shared.Enter(answer.Length, context.RequestAborted);
        try
        {
            await context.Response.Body.WriteAsync(answer, place.Token);
        }
        catch (OperationCanceledException)
        {
            // The caller does not read or has disconnected. A part of the answer must not pass for all of it.
            context.Abort();
        }
    }

    /// <summary>Sends a line of text as the body of the answer.</summary>
    public static Task SendLineAsync(HttpContext context, string line)
    {
        context.Response.ContentType = "text/plain; charset=utf-8";
        return SendAsync(context, Encoding.UTF8.GetBytes(line + "\n"));
    }
}
