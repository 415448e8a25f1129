using Kahuna.Client;

namespace Kahuna.Tests;

/// <summary>
/// The client for tests that are not about its time limits: a machine that stands still for seconds is not a node that
/// is gone. Stateless.
/// </summary>
internal static class PatientClient
{
    /// <param name="endpoints">As for <see cref="KahunaClient.Connect(string, Action{KahunaClientOptions}?)"/>.</param>
    /// <param name="configure">Changes the options, which have no other time limits than those against a hang.</param>
    public static KahunaClient Connect(string endpoints, Action<KahunaClientOptions>? configure = null) =>
        KahunaClient.Connect(endpoints, options =>
        {
            Prepare(options);
            configure?.Invoke(options);
        });

    /// <summary>Gives options the time limits of such a client.</summary>
    public static KahunaClientOptions Prepare(KahunaClientOptions options)
    {
        options.RequestTimeout = LastNet.Call;
        options.ConnectTimeout = LastNet.Call;
        options.KeepAliveInterval = LastNet.Call;
        options.KeepAliveTimeout = LastNet.Call;
        return options;
    }
}
