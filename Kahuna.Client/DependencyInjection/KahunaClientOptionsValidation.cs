using Microsoft.Extensions.Options;

namespace Kahuna.Client.DependencyInjection;

/// <summary>
/// Validates the options for the options framework and reports all errors at once. Owned by the container; stateless.
/// </summary>
internal sealed class KahunaClientOptionsValidation : IValidateOptions<KahunaClientOptions>
{
    /// <inheritdoc/>
    public ValidateOptionsResult Validate(string? name, KahunaClientOptions options)
    {
        List<string> errors = [];
        options.Check(errors);
        return errors.Count == 0 ? ValidateOptionsResult.Success : ValidateOptionsResult.Fail(errors);
    }
}
