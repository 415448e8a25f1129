namespace Kahuna.Tests.Simulation.Network;

/// <summary>How the way from one node to another is.</summary>
/// <param name="IsCut">Nothing goes over it.</param>
/// <param name="ExtraNs">Everything takes longer by that.</param>
/// <param name="IsUp">There is a connection.</param>
/// <param name="Epoch">Which one.</param>
internal readonly record struct LinkShape(bool IsCut, long ExtraNs, bool IsUp, int Epoch)
{
    /// <summary>It is neither cut nor clogged.</summary>
    public bool IsOpen => !IsCut && ExtraNs == 0;
}
