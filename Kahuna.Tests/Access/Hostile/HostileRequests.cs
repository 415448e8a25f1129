namespace Kahuna.Tests.Access.Hostile;

/// <summary>JSON requests that touch another user's name, one for each way in. Stateless.</summary>
internal static class HostileRequests
{
    private const string Persistent = "\"durability\":\"DURABILITY_PERSISTENT\"";
    private const string Value = "\"value\":{\"data\":\"c3RvbGVu\"}";
    private const string Query = "durability=DURABILITY_PERSISTENT";

    /// <summary>Method, path and body of each.</summary>
    /// <param name="name">The name that it may not touch.</param>
    public static IReadOnlyList<(string Method, string Path, string? Body)> OnNames(string name)
    {
        string one = name.EndsWith('/') ? name + "x" : name;
        return
        [
            ("PUT", $"/v1/kv/{one}", $"{{{Persistent},{Value}}}"),
            ("GET", $"/v1/kv/{one}?{Query}", null),
            ("GET", $"/v1/kv/{one}?durability=DURABILITY_EPHEMERAL", null),
            ("GET", $"/v1/exists/{one}?{Query}", null),
            ("DELETE", $"/v1/kv/{one}?{Query}", null),
            ("POST", $"/v1/extend/{one}", $"{{{Persistent},\"ttlMs\":\"1\"}}"),
            ("POST", $"/v1/increment/{one}", $"{{{Persistent},\"amount\":\"1\"}}"),
            ("GET", $"/v1/scan?prefix={name}&{Query}", null),
            ("GET", $"/v1/count?prefix={name}&{Query}", null),
            ("GET", $"/v1/count?prefix={name}&consistent=true&{Query}", null),
            ("POST", "/v1/delete-range", $"{{{Persistent},\"prefix\":\"{name}\",\"limit\":10}}"),
            ("POST", "/v1/batch/set", $"{{\"atomic\":true,\"items\":[{Item("mallory/1", true)},{Item(one, true)}]}}"),
            ("POST", "/v1/batch/get", $"{{\"atomic\":true,\"items\":[{Item("mallory/1")},{Item(one)}]}}"),
            ("POST", "/v1/transaction", Transaction($"{{\"key\":\"{one}\",\"absent\":true}}", Set("mallory/t"))),
            ("POST", "/v1/transaction", Transaction($"{{\"key\":\"{name}\",\"noKeys\":true}}", Set("mallory/t"))),
            ("POST", "/v1/transaction", Transaction("", Set(one))),
            ("POST", "/v1/transaction", Transaction("", Set("mallory/t") + "," + Set(one))),
            ("POST", "/v1/transaction", Transaction(
                "", Set("mallory/t") + $",{{\"get\":{{\"key\":\"{one}\",{Persistent}}}}}")),
            ("POST", "/v1/script", Script($"set '{one}' 'stolen'")),
            ("POST", "/v1/script", Script($"let x = get '{one}' return x")),
            ("PUT", "/v1/kv/mallory/fenced",
                $"{{{Persistent},{Value},\"fence\":{{\"resource\":\"{one}\",\"token\":\"1\"}}}}"),
            ("PUT", $"/v1/locks/{one}",
                $"{{{Persistent},\"owner\":\"me\",\"leaseMs\":\"60000\",\"mode\":\"LOCK_MODE_EXCLUSIVE\"}}"),
            ("GET", $"/v1/locks/{one}?{Query}", null),
            ("GET", $"/v1/locks?prefix={name}&{Query}", null),
            ("POST", $"/v1/next/{one}", "{}"),
            ("GET", $"/v1/sequences?prefix={name}", null),
        ];
    }

    /// <summary>The body of a request that runs a script.</summary>
    public static string Script(string text) => $"{{\"script\":\"{text}\"}}";

    private static string Item(string key, bool isSet = false) =>
        $"{{\"key\":\"{key}\",{Persistent}{(isSet ? "," + Value : "")}}}";

    private static string Set(string key) => $"{{\"set\":{{\"key\":\"{key}\",{Value}}}}}";

    private static string Transaction(string conditions, string then) =>
        $"{{{Persistent},\"conditions\":[{conditions}],\"then\":[{then}]}}";
}
