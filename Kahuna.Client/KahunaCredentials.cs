using System.ComponentModel;
using System.Globalization;
using Kahuna.Client.Connection.Access;

namespace Kahuna.Client;

/// <summary>
/// Says to the cluster who the client is: a user and its password, a token, or a client certificate. Immutable; any
/// thread, and any number of clients. Secrets go over encrypted connections only, and into no log and no message.
/// <para>
/// A cluster that does not accept them ends operations with <see cref="KahunaErrorCode.Unauthenticated"/>. What comes
/// from a callback or a file is read again once before that. Configuration may give them as text: see
/// <see cref="Parse"/>.
/// </para>
/// </summary>
[TypeConverter(typeof(Converter))]
public sealed class KahunaCredentials
{
    private readonly string _shown;
    private readonly Func<string?> _check;

    private KahunaCredentials(
        string shown,
        AuthorizationSource source,
        Func<string?>? check = null,
        ClientCertificateFile? certificate = null)
    {
        (_shown, Source, Certificate) = (shown, source, certificate);
        _check = check ?? (static () => null);
    }

    /// <summary>The header that nodes are shown.</summary>
    internal AuthorizationSource Source { get; }

    /// <summary>The certificate that nodes are shown; null for none.</summary>
    internal ClientCertificateFile? Certificate { get; }

    /// <summary>A user and its password.</summary>
    /// <param name="user">1 to 128 characters, without ':' and control characters.</param>
    /// <param name="password">1 to 1,024 bytes of UTF-8, without control characters.</param>
    /// <exception cref="ArgumentException">One of them cannot be sent; the message does not repeat it.</exception>
    public static KahunaCredentials Password(string user, string password)
    {
        ArgumentNullException.ThrowIfNull(user);
        ArgumentNullException.ThrowIfNull(password);
        return new KahunaCredentials(
            $"password of user \"{user}\"",
            AuthorizationSource.Fixed(Checked(() => AuthorizationText.OfPassword(user, password))));
    }

    /// <summary>
    /// A user and the file with its password, which is read when the client connects first, and again after a refusal.
    /// </summary>
    /// <param name="user">As for <see cref="Password"/>.</param>
    /// <param name="path">A file of one line. The client is not created while it cannot be read.</param>
    /// <exception cref="ArgumentException">The user's name cannot be sent.</exception>
    public static KahunaCredentials PasswordFile(string user, string path)
    {
        ArgumentNullException.ThrowIfNull(user);
        ArgumentNullException.ThrowIfNull(path);
        Checked(() =>
        {
            AuthorizationText.CheckUser(user);
            return user;
        });
        return OfFile(
            $"password of user \"{user}\" in \"{path}\"",
            () => AuthorizationText.OfPassword(user, SecretFile.Read(path)));
    }

    /// <summary>A token: one of the cluster, or a JSON Web Token of an issuer that it trusts.</summary>
    /// <param name="token">1 to 16,384 characters: letters and digits of ASCII, and -._~+/=.</param>
    /// <exception cref="ArgumentException">It cannot be sent; the message does not repeat it.</exception>
    public static KahunaCredentials Token(string token)
    {
        ArgumentNullException.ThrowIfNull(token);
        return new KahunaCredentials(
            "token", AuthorizationSource.Fixed(Checked(() => AuthorizationText.OfToken(token))));
    }

    /// <summary>
    /// A token that is asked for when the client connects first, and again when the cluster refuses it or when it is
    /// old. Operations that were refused meanwhile are sent again once with the new one.
    /// </summary>
    /// <param name="renew">
    /// Gives a token; it has <see cref="KahunaClientOptions.ConnectTimeout"/> to do so. One call runs at a time. While
    /// it throws, the client stays without a connection and asks again after a pause.
    /// </param>
    /// <param name="renewAfter">
    /// The age at which a token is no longer used for new connections, to be set below its lifetime; more than zero.
    /// Null: it is renewed only after a refusal.
    /// </param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="renewAfter"/> is not more than zero.</exception>
    public static KahunaCredentials Token(
        Func<CancellationToken, ValueTask<string>> renew, TimeSpan? renewAfter = null)
    {
        ArgumentNullException.ThrowIfNull(renew);
        if (renewAfter is { } age)
        {
            ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(age, TimeSpan.Zero, nameof(renewAfter));
        }

        return new KahunaCredentials(
            "token that is renewed",
            AuthorizationSource.Renewed(
                async ct => AuthorizationText.OfToken(await renew(ct).ConfigureAwait(false)), renewAfter));
    }

    /// <summary>
    /// The file with a token, which is read when the client connects first, and again after a refusal: for tokens that
    /// something else on the machine renews.
    /// </summary>
    /// <param name="path">A file of one line. The client is not created while it cannot be read.</param>
    public static KahunaCredentials TokenFile(string path)
    {
        ArgumentNullException.ThrowIfNull(path);
        return OfFile($"token in \"{path}\"", () => AuthorizationText.OfToken(SecretFile.Read(path)));
    }

    /// <summary>
    /// A client certificate. The files are read when a stream is opened, so that a renewed certificate needs no
    /// restart. The client is not created while they cannot be read.
    /// </summary>
    /// <param name="certificatePath">PEM, with the authorities between it and the cluster's after it; or PFX.</param>
    /// <param name="keyPath">The key in PEM; null: it is in the file of the certificate.</param>
    /// <param name="password">Opens an encrypted key or a PFX file; null for none.</param>
    public static KahunaCredentials ClientCertificate(
        string certificatePath, string? keyPath = null, string? password = null)
    {
        ArgumentNullException.ThrowIfNull(certificatePath);
        ClientCertificateFile file = new(certificatePath, keyPath, password);
        return new KahunaCredentials(
            $"client certificate \"{certificatePath}\"",
            AuthorizationSource.Renewed(static _ => new ValueTask<string?>((string?)null)),
            () => ErrorOf(() => file.Read()),
            file);
    }

    /// <summary>
    /// Reads credentials from text, as connection strings and configuration give them: <c>key=value</c>, separated by
    /// ';'. The keys are one of: <c>user</c> with <c>password</c> or <c>password-file</c>; <c>token</c>;
    /// <c>token-file</c>; <c>client-certificate</c> with <c>client-certificate-key</c> and
    /// <c>client-certificate-password</c>, which may be left out. A value may stand in double quotes, where a doubled
    /// one stands for itself.
    /// </summary>
    /// <param name="text">The text.</param>
    /// <exception cref="FormatException">It cannot be read; the message does not repeat values.</exception>
    public static KahunaCredentials Parse(string text)
    {
        ArgumentNullException.ThrowIfNull(text);
        try
        {
            return CredentialsText.Read(text);
        }
        catch (ArgumentException refused)
        {
            throw new FormatException(refused.Message);
        }
    }

    /// <summary>Says what they are, without secrets.</summary>
    public override string ToString() => _shown;

    /// <summary>Why they cannot be used, as a clause; null when they can.</summary>
    internal string? Check() => _check();

    private static KahunaCredentials OfFile(string shown, Func<string> read) => new(
        shown, AuthorizationSource.Renewed(_ => new ValueTask<string?>(read())), () => ErrorOf(() => _ = read()));

    private static string? ErrorOf(Action read)
    {
        try
        {
            read();
            return null;
        }
        catch (Exception failure) when (failure is IOException or FormatException)
        {
            return failure.Message;
        }
    }

    private static string Checked(Func<string> make)
    {
        try
        {
            return make();
        }
        catch (FormatException refused)
        {
            throw new ArgumentException($"The credentials cannot be used: {refused.Message}.");
        }
    }

    /// <summary>Lets the configuration binder read <c>"Credentials": "user=…;password-file=…"</c>. Stateless.</summary>
    private sealed class Converter : TypeConverter
    {
        /// <inheritdoc/>
        public override bool CanConvertFrom(ITypeDescriptorContext? context, Type sourceType) =>
            sourceType == typeof(string) || base.CanConvertFrom(context, sourceType);

        /// <inheritdoc/>
        public override object? ConvertFrom(ITypeDescriptorContext? context, CultureInfo? culture, object value) =>
            value is string text ? Parse(text) : base.ConvertFrom(context, culture, value);
    }
}
