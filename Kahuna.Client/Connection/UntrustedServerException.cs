using System.Security.Authentication;

namespace Kahuna.Client.Connection;

/// <summary>
/// A server's certificate is not trusted. No further attempt succeeds until somebody changes a certificate or an
/// option, so that calls fail at once.
/// </summary>
internal sealed class UntrustedServerException(string message) : AuthenticationException(message)
{
    /// <summary>What it says, if that is why something failed; else null.</summary>
    public static string? Find(Exception? failure)
    {
        for (; failure is not null; failure = failure.InnerException)
        {
            if (failure is UntrustedServerException untrusted)
            {
                return untrusted.Message;
            }
        }

        return null;
    }
}
