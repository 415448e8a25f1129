using Kahuna.Server.Access;

namespace Kahuna.Server.Api.Access;

/// <summary>Who somebody is, or why nobody. Immutable.</summary>
internal readonly record struct SignIn
{
    private SignIn(Caller? caller, SignInRefusal? refusal) => (Caller, Refusal) = (caller, refusal);

    /// <summary>The caller; null when it is refused.</summary>
    public Caller? Caller { get; }

    /// <summary>Why it is refused; null when it is not.</summary>
    public SignInRefusal? Refusal { get; }

    public static implicit operator SignIn(Caller caller) => new(caller, null);

    public static implicit operator SignIn(SignInRefusal refusal) => new(null, refusal);
}
