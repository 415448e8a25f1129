using System.Collections.ObjectModel;
using System.ComponentModel;
using System.Globalization;

namespace Kahuna.Client;

/// <summary>
/// The addresses of a cluster's nodes, each <c>https://host:port</c>. The configuration binder also reads it from a
/// comma-separated text. One thread at a time.
/// </summary>
[TypeConverter(typeof(Converter))]
public sealed class EndpointList : Collection<Uri>
{
    /// <summary>Adds the addresses of a comma-separated list: <c>https://a:8082,https://b:8084</c>.</summary>
    /// <param name="endpoints">The list.</param>
    /// <exception cref="FormatException">An entry is not an address of the form https://host:port.</exception>
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
    /// Adds the valid addresses of a list, and a sentence to <paramref name="errors"/> for each invalid one.
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
                errors.Add($"endpoint \"{part}\" is not an address of the form https://host:port");
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
