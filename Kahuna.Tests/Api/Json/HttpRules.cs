using Google.Api;
using Kahuna.Server.Hosting;

namespace Kahuna.Tests.Api.Json;

/// <summary>The calls of JSON over HTTP that the descriptors of the services name. Stateless.</summary>
internal static class HttpRules
{
    /// <summary>Each method with its paths.</summary>
    public static IEnumerable<(string Method, string Path)> All() =>
        from service in NodeServices.Described()
        from method in service.Methods
        let rule = method.GetOptions()?.GetExtension(AnnotationsExtensions.Http)
        where rule is not null
        from each in (HttpRule[])[rule, .. rule.AdditionalBindings]
        select (method.Name, $"{each.Get}{each.Put}{each.Post}{each.Patch}{each.Delete}");
}
