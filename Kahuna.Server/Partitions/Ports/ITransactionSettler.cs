using Kahuna.Server.State.KeyValues;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: ends transactions over several partitions that nobody has ended in time. Called from a loop's turn; must not
/// block, and may drop what it is asked: a leader asks again while the transaction is late.
/// </summary>
internal interface ITransactionSettler
{
    /// <summary>The leader of a group knows of a late transaction.</summary>
    /// <param name="late">What the group knows of it.</param>
    /// <param name="durability">The group's.</param>
    void Settle(LateTransaction late, Durability durability);
}
