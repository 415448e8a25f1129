using Kahuna.Client;

namespace Kahuna.Tests;

/// <summary>
/// The client for tests that are not about its time limits: on a busy machine a node may take longer for an answer, to
/// a ping too, than a user should wait. Stateless.
/// </summary>
internal static class PatientClient
{
    /// <param name="endpoints">As for <see cref="KahunaClient.Connect(string, Action{KahunaClientOptions}?)"/>.</param>
    /// <param name="configure">Changes the options, which have no other time limits than those against a hang.</param>
    public static KahunaClient Connect(string endpoints, Action<KahunaClientOptions>? configure = null) =>
        KahunaClient.Connect(endpoints, options =>
        {
            options.RequestTimeout = LastNet.Call;
            options.ConnectTimeout = LastNet.Call;
            options.KeepAliveInterval = LastNet.Call;
            options.KeepAliveTimeout = LastNet.Call;
            configure?.Invoke(options);
        });
}
