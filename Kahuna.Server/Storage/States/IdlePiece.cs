namespace Kahuna.Server.Storage.States;

/// <summary>The room for a writer's records, which writers hand on to each other. Owned by the store; not thread-safe.</summary>
internal sealed class IdlePiece
{
    private RecordPiece? _piece;

    public RecordPiece Take()
    {
        RecordPiece piece = _piece ?? new RecordPiece();
        _piece = null;
        return piece;
    }

    public void Give(RecordPiece piece)
    {
        piece.Clear();
        _piece = piece;
    }

    /// <summary>Nobody writes for a while.</summary>
    public void LetGo() => _piece = null;
}
