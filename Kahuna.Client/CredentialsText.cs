using System.Text;

namespace Kahuna.Client;

/// <summary>
/// Reads credentials from the text of a connection string. Stateless; any thread. No error repeats a value.
/// </summary>
internal static class CredentialsText
{
    private const string User = "user";
    private const string Password = "password";
    private const string PasswordFile = "password-file";
    private const string Token = "token";
    private const string TokenFile = "token-file";
    private const string Certificate = "client-certificate";
    private const string CertificateKey = "client-certificate-key";
    private const string CertificatePassword = "client-certificate-password";

    private static readonly string[] s_keys =
        [User, Password, PasswordFile, Token, TokenFile, Certificate, CertificateKey, CertificatePassword];

    /// <summary>The credentials that the text describes.</summary>
    /// <exception cref="FormatException">It is not such a text.</exception>
    /// <exception cref="ArgumentException">A value cannot be sent.</exception>
    public static KahunaCredentials Read(string text)
    {
        Dictionary<string, string> values = Split(text);
        string keys = string.Join(", ", values.Keys.Order(StringComparer.Ordinal));
        return keys switch
        {
            Password + ", " + User => KahunaCredentials.Password(values[User], values[Password]),
            PasswordFile + ", " + User => KahunaCredentials.PasswordFile(values[User], values[PasswordFile]),
            Token => KahunaCredentials.Token(values[Token]),
            TokenFile => KahunaCredentials.TokenFile(values[TokenFile]),
            Certificate
                or Certificate + ", " + CertificateKey
                or Certificate + ", " + CertificatePassword
                or Certificate + ", " + CertificateKey + ", " + CertificatePassword => OfCertificate(values),
            _ => throw new FormatException(
                (keys.Length == 0 ? "no credentials are given" : $"{keys} do not go together")
                    + "; they are user with password or password-file, token, token-file, or client-certificate"),
        };
    }

    private static KahunaCredentials OfCertificate(Dictionary<string, string> values) =>
        KahunaCredentials.ClientCertificate(
            values[Certificate],
            values.GetValueOrDefault(CertificateKey),
            values.GetValueOrDefault(CertificatePassword));

    private static Dictionary<string, string> Split(string text)
    {
        Dictionary<string, string> values = new(StringComparer.Ordinal);
        int at = 0;
        while (at < text.Length)
        {
            int end = text.AsSpan(at).IndexOfAny('=', ';') is >= 0 and int length ? at + length : text.Length;
            string key = text[at..end].Trim().ToLowerInvariant();
            if (end == text.Length || text[end] == ';')
            {
                at = end + 1;
                if (key.Length > 0)
                {
                    throw new FormatException("a part between two ';' is not of the form key=value");
                }

                continue;
            }

            if (!s_keys.Contains(key))
            {
                throw new FormatException($"a key is not known; the keys are {string.Join(", ", s_keys)}");
            }

            at = end + 1;
            if (!values.TryAdd(key, Value(text, key, ref at)))
            {
                throw new FormatException($"{key} is given twice");
            }
        }

        return values;
    }

    /// <summary>Reads a value up to the ';' behind it.</summary>
    private static string Value(string text, string key, ref int at)
    {
        int end = text.IndexOf(';', at) is >= 0 and int found ? found : text.Length;
        string plain = text[at..end].Trim();
        if (!plain.StartsWith('"'))
        {
            at = end + 1;
            return plain.Length > 0 ? plain : throw new FormatException($"{key} is empty");
        }

        StringBuilder value = new();
        at = text.IndexOf('"', at) + 1;
        while (at < text.Length)
        {
            char c = text[at++];
            if (c != '"')
            {
                value.Append(c);
                continue;
            }

            if (at < text.Length && text[at] == '"')
            {
                value.Append('"');
                at++;
                continue;
            }

            end = text.IndexOf(';', at) is >= 0 and int next ? next : text.Length;
            bool isClean = string.IsNullOrWhiteSpace(text[at..end]);
            at = end + 1;
            return value.Length > 0 && isClean ? value.ToString()
                : throw new FormatException($"{key} is empty, or something follows its closing quote");
        }

        throw new FormatException($"{key} has no closing quote");
    }
}
