using System.Formats.Asn1;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Server.Access;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Finds the user of a client certificate. That an authority of <c>--auth-client-ca</c> issued it, for clients and for
/// now, was checked in the TLS handshake, and the <see cref="Authenticator"/> refuses others. Stateless; any thread.
/// </summary>
/// <param name="access">The users.</param>
internal sealed class CertificateSignIn(AccessState access)
{
    private const string CommonName = "2.5.4.3";

    private const string AlternativeNames = "2.5.29.17";

    /// <summary>Tags of the alternative names that are text: rfc822Name, dNSName and URI (RFC 5280, 4.2.1.6).</summary>
    private static readonly int[] s_textTags = [1, 2, 6];

    /// <summary>The user whose certificates have one of the names of this one.</summary>
    public SignIn Check(X509Certificate2 certificate, string address)
    {
        IReadOnlyList<string> names = NamesOf(certificate);
        return access.Book.FindUserOfCertificate(names) is { } user
            ? new Caller(access, user, CallerMethod.Certificate)
            {
                Address = address,
                CertificateNames = names,
                ExpiresMs = new DateTimeOffset(certificate.NotAfter).ToUnixTimeMilliseconds(),
            }
            : SignInRefusal.Unauthenticated("No user has a name of the client certificate.", certificate.Subject);
    }

    /// <summary>
    /// The names of a certificate: its subject, the subject's common name if it has one, and the alternative names that
    /// are mail addresses, host names or URIs.
    /// </summary>
    internal static IReadOnlyList<string> NamesOf(X509Certificate2 certificate)
    {
        List<string> names = [certificate.Subject];
        try
        {
            string?[] common =
            [
                .. certificate.SubjectName.EnumerateRelativeDistinguishedNames()
                    .Where(static part => !part.HasMultipleElements && part.GetSingleElementType().Value == CommonName)
                    .Select(static part => part.GetSingleElementValue()),
            ];
            if (common is [{ } only])
            {
                names.Add(only);
            }

            foreach (X509Extension extension in certificate.Extensions.Where(
                static extension => extension.Oid?.Value == AlternativeNames))
            {
                AddAlternative(names, extension.RawData);
            }
        }
        catch (Exception error) when (error is AsnContentException or CryptographicException)
        {
            // What is malformed names nobody.
            return [];
        }

        return names;
    }

    private static void AddAlternative(List<string> names, byte[] content)
    {
        AsnReader sequence = new AsnReader(content, AsnEncodingRules.DER).ReadSequence();
        while (sequence.HasData)
        {
            Asn1Tag tag = sequence.PeekTag();
            if (tag.TagClass == TagClass.ContextSpecific && s_textTags.Contains(tag.TagValue))
            {
                names.Add(sequence.ReadCharacterString(UniversalTagNumber.IA5String, tag));
            }
            else
            {
                sequence.ReadEncodedValue();
            }
        }
    }
}
