using System.Reflection;

namespace Kahuna.Server.Hosting.Options;

/// <summary>The version of this build, without the commit that a build may append. Immutable.</summary>
internal static class ProductVersion
{
    public static string Text { get; } =
        (typeof(ProductVersion).Assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion ?? "0.0.0").Split('+')[0];
}
