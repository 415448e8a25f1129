using System.Security.Cryptography.X509Certificates;

namespace Kahuna.Server.Hosting.Certificates;

/// <summary>
/// Warns once a day of a certificate that expires within 30 days, or has expired. One call at a time.
/// </summary>
/// <param name="refused">What is refused when it has expired, for the log: a plural noun.</param>
/// <param name="time">The clock.</param>
/// <param name="log">Receives the events.</param>
internal sealed class ExpiryWarnings(string refused, TimeProvider time, ILogger log)
{
    /// <summary>How long before its expiry a certificate is warned of.</summary>
    public static readonly TimeSpan WarnBefore = TimeSpan.FromDays(30);

    /// <summary>Interval of the warnings.</summary>
    private static readonly TimeSpan s_again = TimeSpan.FromDays(1);

    private DateTimeOffset _from = DateTimeOffset.MinValue;

    /// <summary>Warns if it is time to.</summary>
    /// <param name="part">What the certificate is, at the beginning of a sentence.</param>
    /// <param name="first">The one that expires first.</param>
    public void Look(string part, X509Certificate2 first)
    {
        DateTimeOffset now = time.GetUtcNow();
        if (now < _from)
        {
            return;
        }

        DateTime end = first.NotAfter.ToUniversalTime();
        if (end <= now.UtcDateTime)
        {
            _from = now + s_again;
            log.CertificateEnded(part, first.Subject, end, refused);
        }
        else if (end - now.UtcDateTime <= WarnBefore)
        {
            // The expiry itself is reported when it comes.
            _from = now + s_again < end ? now + s_again : end;
            log.CertificateEndsSoon(part, first.Subject, end, (int)(end - now.UtcDateTime).TotalDays);
        }
    }

    /// <summary>The certificate is another one: the next look warns at once.</summary>
    public void BeginAgain() => _from = DateTimeOffset.MinValue;
}
