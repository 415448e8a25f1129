using Kahuna.Server.State.Rows;

namespace Kahuna.Tests.State.Rows;

/// <summary>
/// The hash against values of another implementation: CPython's, whose <c>hash(bytes)</c> is SipHash-1-3
/// (PYTHONHASHSEED 0 is the key zero; the other key is that of PYTHONHASHSEED 20261123).
/// </summary>
public sealed class SipHash13Tests
{
    [Theory]
    [InlineData(1, 0x68A914128E01E473, 0x91B69A3548A9BF9C)]
    [InlineData(3, 0x4D4C9A4A8EF6E0AD, 0xB1F711C14837D005)]
    [InlineData(4, 0x7CC43F98813E4DBD, 0x5E830126E8BF4F2A)]
    [InlineData(7, 0x2F098AB0C751325A, 0x3E84C5302237BB9E)]
    [InlineData(8, 0xEAD411E67EBE2EEA, 0x5AC0F2A43F2D48A8)]
    [InlineData(9, 0x75927F9D95124362, 0x946EF89C5ABAFD13)]
    [InlineData(15, 0xF30EB725BB91C9EA, 0x8415AF63AAD65FBC)]
    [InlineData(16, 0x8972188433A5C5B7, 0xA74614B571ECEFEF)]
    [InlineData(17, 0x4883C49A2C009C1D, 0x1717630F8E86E215)]
    [InlineData(31, 0x169739443111D49B, 0xEA5A44E45CFD397F)]
    [InlineData(64, 0x75E05FD5BBC870C6, 0x8603221A9EB9F559)]
    public void Inputs_hash_as_the_specification_says(int length, ulong withoutKey, ulong withKey)
    {
        byte[] input = [.. Enumerable.Range(0, length).Select(static i => (byte)i)];
        Assert.Equal(withoutKey, SipHash13.Hash(input, default));
        Assert.Equal(
            withKey, SipHash13.Hash(input, HashSecret.From(Convert.FromHexString("74a3bf25b5f3dddf85be03171f6bcb8d"))));
    }

    [Fact]
    public void A_secret_is_not_shown() =>
        Assert.DoesNotContain(
            "74",
            new StateLimits { HashSecret = new HashSecret(0x74, 74) }.ToString().Split("HashSecret")[1].Split(',')[0],
            StringComparison.Ordinal);
}
