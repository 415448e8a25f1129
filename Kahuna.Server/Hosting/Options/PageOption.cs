namespace Kahuna.Server.Hosting.Options;

/// <summary>Reads the option that switches the page off. Stateless.</summary>
internal static class PageOption
{
    /// <summary>Whether the node serves the page.</summary>
    /// <param name="values">The given options.</param>
    /// <param name="errors">Receives the errors.</param>
    public static bool Read(IReadOnlyDictionary<OptionSetting, GivenValue> values, List<string> errors)
    {
        if (!values.TryGetValue(OptionSetting.Ui, out GivenValue value))
        {
            return true;
        }

        switch (value.Text.ToUpperInvariant())
        {
            case "ON":
                return true;
            case "OFF":
                return false;
            default:
                errors.Add($"{value.Origin}: '{OneLine.Of(value.Text)}' is not one of on, off.");
                return true;
        }
    }
}
