using System.Collections.ObjectModel;
using System.ComponentModel;
using System.Globalization;

namespace Kahuna.Client;

/// <summary>
/// Addresses of a cluster's nodes, <c>https://host:port</c> each. Reads a comma-separated list from configuration, too.
/// One thread at a time.
/// </summary>
[TypeConverter(typeof(Converter))]
public sealed class EndpointList : Collection<Uri>
{
    /// <summary>Adds the addresses of a comma-separated list: <c>https://a:8082,https://b:8084</c>.</summary>
    /// <param name="endpoints">The list.</param>
    /// <exception cref="FormatException">One is no address of the form https://host:port.</exception>
    public void Add(string endpoints)
    {
        List<string> errors = [];
        Add(endpoints, errors);
        if (errors.Count > 0)
        {
            throw new FormatException(string.Join("; ", errors));
        }
    }

    /// <summary>
    /// Adds the addresses that can be read, and a sentence to <paramref name="errors"/> for each that cannot.
    /// </summary>
    internal void Add(string endpoints, List<string> errors)
    {
        const StringSplitOptions Options = StringSplitOptions.TrimEntries | StringSplitOptions.RemoveEmptyEntries;
        foreach (string part in endpoints.Split(',', Options))
        {
            if (Uri.TryCreate(part, UriKind.Absolute, out Uri? uri) && uri.Host.Length > 0)
            {
                Add(uri);
            }
            else
            {
                errors.Add($"endpoint \"{part}\" is no address of the form https://host:port");
            }
        }
    }

    /// <summary>
    /// Lets the configuration binder read <c>"Endpoints": "https://a:8082,https://b:8084"</c>. Stateless.
    /// </summary>
    private sealed class Converter : TypeConverter
    {
        /// <inheritdoc/>
        public override bool CanConvertFrom(ITypeDescriptorContext? context, Type sourceType) =>
            sourceType == typeof(string) || base.CanConvertFrom(context, sourceType);

        /// <inheritdoc/>
        public override object? ConvertFrom(ITypeDescriptorContext? context, CultureInfo? culture, object value)
        {
            if (value is not string text)
            {
                return base.ConvertFrom(context, culture, value);
            }

            EndpointList endpoints = [];
            endpoints.Add(text);
            return endpoints;
        }
    }
}
