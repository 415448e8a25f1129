using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Kahuna.Client.DependencyInjection;

/// <summary>Registers the health check of the Kahuna client. Stateless.</summary>
public static class KahunaHealthChecksBuilderExtensions
{
    private static readonly TimeSpan s_timeout = TimeSpan.FromSeconds(2);

    /// <summary>
    /// Adds a check of the registered <see cref="KahunaClient"/>, which is healthy only when each partition answers a
    /// linearizable read in time: <see cref="KahunaClient.CheckAsync"/>. It costs a read per partition and durability.
    /// With authentication, the client's user needs the permission to read on any name.
    /// </summary>
    /// <param name="builder">The builder of <c>AddHealthChecks()</c>; <c>AddKahuna</c> registers the client.</param>
    /// <param name="name">The check's name.</param>
    /// <param name="timeout">How long the partitions may take, all together; more than zero. Null: 2 s.</param>
    /// <param name="failureStatus">What is reported when one does not answer. Null: unhealthy.</param>
    /// <param name="tags">Tags to filter checks by.</param>
    /// <returns>The same builder.</returns>
    /// <exception cref="ArgumentOutOfRangeException">The timeout is not more than zero.</exception>
    public static IHealthChecksBuilder AddKahuna(
        this IHealthChecksBuilder builder,
        string name = "kahuna",
        TimeSpan? timeout = null,
        HealthStatus? failureStatus = null,
        IEnumerable<string>? tags = null)
    {
        ArgumentNullException.ThrowIfNull(builder);
        ArgumentNullException.ThrowIfNull(name);
        TimeSpan limit = timeout ?? s_timeout;
        ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(limit, TimeSpan.Zero, nameof(timeout));
        return builder.Add(new HealthCheckRegistration(
            name,
            provider => new KahunaHealthCheck(provider.GetRequiredService<KahunaClient>(), limit),
            failureStatus,
            tags));
    }
}
