using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Handle of a RocksDB object, which is destroyed once, after its last use. Any thread.</summary>
internal abstract class NativeHandle : SafeHandle
{
    protected NativeHandle(nint created)
        : base(0, ownsHandle: true) => SetHandle(created);

    public override bool IsInvalid => handle == 0;
}
