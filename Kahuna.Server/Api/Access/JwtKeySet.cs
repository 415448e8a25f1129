using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Reads public keys: a JSON Web Key Set (RFC 7517), or PEM with public keys and certificates. Stateless.
/// </summary>
internal static class JwtKeySet
{
    /// <summary>Shorter ones are broken; RFC 7518, 3.3.</summary>
    private const int RsaBitsMin = 2048;

    /// <summary>The public RSA and EC keys for signatures. Others of a key set are left out.</summary>
    /// <exception cref="InvalidDataException">There is none, or the text is neither form.</exception>
    public static IReadOnlyList<SecurityKey> Read(byte[] content)
    {
        try
        {
            string text = Encoding.UTF8.GetString(content);
            List<SecurityKey> keys = text.TrimStart().StartsWith('{') ? ReadSet(text) : ReadPem(text);
            return keys.Count > 0 ? keys : throw new InvalidDataException("it has no public RSA or EC key.");
        }
        catch (Exception error) when (error is ArgumentException or CryptographicException or FormatException)
        {
            throw new InvalidDataException("it is neither a JSON Web Key Set nor PEM with public keys.", error);
        }
    }

    private static List<SecurityKey> ReadSet(string text)
    {
        List<SecurityKey> keys = [];
        foreach (JsonWebKey key in new JsonWebKeySet(text).Keys)
        {
            bool isForSignatures = string.IsNullOrEmpty(key.Use) || key.Use == JsonWebKeyUseNames.Sig;
            bool isAsymmetric = key.Kty is JsonWebAlgorithmsKeyTypes.RSA or JsonWebAlgorithmsKeyTypes.EllipticCurve;
            if (isForSignatures && isAsymmetric && !key.HasPrivateKey && IsLongEnough(key))
            {
                keys.Add(key);
            }
        }

        return keys;
    }

    private static bool IsLongEnough(JsonWebKey key) =>
        key.Kty != JsonWebAlgorithmsKeyTypes.RSA || key.KeySize >= RsaBitsMin;

    private static List<SecurityKey> ReadPem(string text)
    {
        List<SecurityKey> keys = [];
        ReadOnlySpan<char> rest = text;
        while (PemEncoding.TryFind(rest, out PemFields fields))
        {
            string pem = rest[fields.Location].ToString();
            switch (rest[fields.Label].ToString())
            {
                case "CERTIFICATE":
                    using (X509Certificate2 certificate = X509Certificate2.CreateFromPem(pem))
                    {
                        Add(keys, certificate.GetRSAPublicKey(), certificate.GetECDsaPublicKey());
                    }

                    break;
                case "PUBLIC KEY":
                    AddPublic(keys, pem);
                    break;
                default:
                    throw new InvalidDataException(
                        $"it has a '{rest[fields.Label]}'; only public keys and certificates belong there.");
            }

            rest = rest[fields.Location.End..];
        }

        return keys;
    }

    private static void AddPublic(List<SecurityKey> keys, string pem)
    {
        RSA rsa = RSA.Create();
        try
        {
            rsa.ImportFromPem(pem);
            Add(keys, rsa, null);
        }
        catch (CryptographicException)
        {
            rsa.Dispose();
            ECDsa ec = ECDsa.Create();
            ec.ImportFromPem(pem);
            Add(keys, null, ec);
        }
    }

    private static void Add(List<SecurityKey> keys, RSA? rsa, ECDsa? ec)
    {
        if (rsa is { KeySize: >= RsaBitsMin })
        {
            keys.Add(new RsaSecurityKey(rsa));
        }
        else if (ec is not null)
        {
            keys.Add(new ECDsaSecurityKey(ec));
        }
    }
}
