using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Decides where a data directory keeps its state: once, at its first start. Stateless.</summary>
internal static class StateStoreSelection
{
    /// <summary>The choice for a directory that records <paramref name="recorded"/> (null: nothing yet).</summary>
    /// <param name="options">What was asked for, and for which directory.</param>
    /// <param name="recorded">What the directory keeps its state in already.</param>
    /// <param name="available">Whether the library of RocksDB was found.</param>
    /// <param name="warning">A line for the operator, when a new directory has to do without RocksDB.</param>
    /// <exception cref="DataDirectoryException">The directory cannot be opened in this way; the message is one line.</exception>
    public static StateStoreChoice Choose(NodeOptions options, StateStoreChoice? recorded, bool available, out ReportLine? warning)
    {
        warning = null;
        StateStoreChoice asked = options.StateStore;
        if (recorded is StateStoreChoice kept && asked != StateStoreChoice.Auto && asked != kept)
        {
            throw new DataDirectoryException(
                $"The data directory {options.DataDirectory} keeps its state in '{NameOf(kept)}', but this node is started with {OptionSetting.StateStore.Flag} {NameOf(asked)}; "
                + $"leave the option out or use another directory. A node of a cluster can change it with {OptionSetting.Rebuild.Flag}.");
        }

        StateStoreChoice choice = recorded ?? asked;
        if (choice == StateStoreChoice.RocksDb && !available)
        {
            string why = recorded is null ? $"{OptionSetting.StateStore.Flag} {NameOf(choice)}" : $"The data directory {options.DataDirectory} keeps its state in RocksDB";
            throw new DataDirectoryException($"{why}: {RocksDbLibrary.Missing}.");
        }

        if (choice != StateStoreChoice.Auto)
        {
            return choice;
        }

        if (available)
        {
            return StateStoreChoice.RocksDb;
        }

        warning = $"The state is kept in whole files, which suits small data only: {RocksDbLibrary.Missing}. The new data directory {options.DataDirectory} stays with files also when the library is there later.";
        return StateStoreChoice.Files;
    }

    /// <summary>The name under which a choice is written, in options and in <c>node.json</c>.</summary>
    public static string NameOf(StateStoreChoice choice) => choice.ToString().ToLowerInvariant();
}
