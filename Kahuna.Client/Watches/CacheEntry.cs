namespace Kahuna.Client.Watches;

/// <summary>A key as a cache has it. Immutable; do not change the value's bytes, which all callers share.</summary>
/// <param name="Value">The value.</param>
/// <param name="Revision">The revision that wrote it.</param>
public readonly record struct CacheEntry(KahunaValue Value, Revision Revision);

/// <summary>A change of a cache. Immutable.</summary>
/// <param name="Key">The key.</param>
/// <param name="Before">What it was; null: the key was not there.</param>
/// <param name="After">What it is; null: the key is gone.</param>
public readonly record struct CacheChange(string Key, CacheEntry? Before, CacheEntry? After);
