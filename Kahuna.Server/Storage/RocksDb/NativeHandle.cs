using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>An object of RocksDB that is destroyed once, when nobody uses it any more.</summary>
internal abstract class NativeHandle : SafeHandle
{
    protected NativeHandle(nint created)
        : base(0, ownsHandle: true) => SetHandle(created);

    public override bool IsInvalid => handle == 0;
}
