namespace Kahuna.Tests.Traces;

/// <summary>Traces that cannot be checked: the sentence says what is wrong, and where.</summary>
internal sealed class TraceException(string sentence) : Exception(sentence)
{
    public TraceException(TracePlace place, string sentence)
        : this($"{place}: {sentence}")
    {
    }
}
