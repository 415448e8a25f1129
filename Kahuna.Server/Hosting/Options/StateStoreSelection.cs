using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Hosting.Options;

/// <summary>Chooses the state store of a data directory, once, at its first start. Stateless.</summary>
internal static class StateStoreSelection
{
    /// <summary>The choice for a directory that records <paramref name="recorded"/> (null: nothing yet).</summary>
    /// <param name="options">The requested store and the directory.</param>
    /// <param name="recorded">The store that the directory has already.</param>
    /// <param name="available">Whether the RocksDB library was found.</param>
    /// <param name="warning">A line for the operator if a new directory must do without RocksDB.</param>
    /// <exception cref="DataDirectoryException">The directory cannot be opened with this store; the message is one
    /// line.</exception>
    public static StateStoreChoice Choose(
        NodeOptions options, StateStoreChoice? recorded, bool available, out ReportLine? warning)
    {
        warning = null;
        StateStoreChoice asked = options.StateStore;
        if (recorded is StateStoreChoice kept && asked != StateStoreChoice.Auto && asked != kept)
        {
            throw new DataDirectoryException(
                $"The data directory {options.DataDirectory} keeps its state in '{NameOf(kept)}', but this node is "
                    + $"started with {OptionSetting.StateStore.Flag} {NameOf(asked)}; "
                + $"leave the option out or use another directory. A node of a cluster can change it with "
                + $"{OptionSetting.Rebuild.Flag}.");
        }

        StateStoreChoice choice = recorded ?? asked;
        if (choice == StateStoreChoice.RocksDb && !available)
        {
            string why = recorded is null
                ? $"{OptionSetting.StateStore.Flag} {NameOf(choice)}"
                : $"The data directory {options.DataDirectory} keeps its state in RocksDB";
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

        warning =
            $"The state is kept in whole files, which suits small data only: {RocksDbLibrary.Missing}. The new data "
                + $"directory {options.DataDirectory} stays with files also when the library is there later.";
        return StateStoreChoice.Files;
    }

    /// <summary>The name of a choice in options and in <c>node.json</c>.</summary>
    public static string NameOf(StateStoreChoice choice) => choice.ToString().ToLowerInvariant();
}
