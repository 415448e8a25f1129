using System.Reflection;

namespace Kahuna.Server.Hosting.Options;

/// <summary>The version of this build, without a commit that the build appends. Immutable.</summary>
internal static class ProductVersion
{
    public static string Text { get; } = Informational().Split('+')[0];

    private static string Informational()
    {
        Assembly assembly = typeof(ProductVersion).Assembly;
        return assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion ?? "0.0.0";
    }
}
