using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace Kahuna.Client.DependencyInjection;

/// <summary>Registers the Kahuna client in a service collection. Stateless.</summary>
public static class KahunaServiceCollectionExtensions
{
    /// <summary>
    /// Registers one <see cref="KahunaClient"/> for the application. The container creates it at its first use and
    /// disposes it. Invalid options fail then with an <see cref="OptionsValidationException"/> that lists every reason.
    /// </summary>
    /// <param name="services">The collection to add to.</param>
    /// <param name="configure">Sets the options; at least one endpoint is required.</param>
    /// <returns>The same collection.</returns>
    public static IServiceCollection AddKahuna(this IServiceCollection services, Action<KahunaClientOptions> configure)
    {
        ArgumentNullException.ThrowIfNull(services);
        ArgumentNullException.ThrowIfNull(configure);
        services.AddOptions<KahunaClientOptions>().Configure(configure);
        services.TryAddEnumerable(
            ServiceDescriptor.Singleton<IValidateOptions<KahunaClientOptions>, KahunaClientOptionsValidation>());
        services.TryAddSingleton(provider => new KahunaClient(
            provider.GetRequiredService<IOptions<KahunaClientOptions>>().Value,
            provider.GetService<ILoggerFactory>()));
        return services;
    }
}
