namespace Kahuna.Client.Locks;

/// <summary>Wakes the <see cref="LeaseKeeper"/> that owns it, which is given at construction. Any thread.</summary>
internal interface ILeaseAlarm : IDisposable
{
    /// <summary>
    /// Wakes the keeper once, at a moment on the connection clock's scale or a little later. Replaces the moment that
    /// was set before.
    /// </summary>
    void Set(long moment);
}
